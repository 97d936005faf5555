;; Looks at blocks of whole CSV records, 64 bytes at a time: each byte value that matters becomes a mask of 64 bits, and what is wrong
;; with line ends and quotes falls out of shifts of those masks. State is carried from one call of `feed` to the next.
;; screen-kernel.ts is made from this file: `node test/support/write-kernels.mjs`; a unit test compares the two.
(module
  ;; Bytes to look at lie from 0 on; 64 KiB, and room for the padding behind them.
  (memory (export "memory") 2)
  (global $quote (mut v128) (v128.const i64x2 0 0))
  (global $delimiter (mut v128) (v128.const i64x2 0 0))
  ;; All ones or zeros: whether there are quotes; whether two quotes within quotes are one; whether line ends ought to be CR LF.
  (global $quotes (mut i64) (i64.const 0))
  (global $doubled (mut i64) (i64.const 0))
  (global $crlf (mut i64) (i64.const 0))
  ;; All ones: within quotes.
  (global $inside (mut i64) (i64.const 0))
  ;; Bit 0: whether the byte before may come before an opening quote, was a closing quote, a CR, a line end.
  (global $mayOpen (mut i64) (i64.const 1))
  (global $closed (mut i64) (i64.const 0))
  (global $crBefore (mut i64) (i64.const 0))
  (global $endBefore (mut i64) (i64.const 1))
  (global $bad (mut i64) (i64.const 0))
  (global $blank (mut i64) (i64.const 0))
  (global $lines (mut i32) (i32.const 0))
  (global $records (mut i32) (i32.const 0))
  (global $nul (mut v128) (v128.const i64x2 0 0))
  (global $backslash (mut v128) (v128.const i64x2 0 0))
  (global $high (mut v128) (v128.const i64x2 0 0))

  ;; quote: -1 where there is none. The block begins a record.
  (func (export "begin") (param $q i32) (param $d i32) (param $doubling i32) (param $pairs i32)
    (global.set $quote (i8x16.splat (local.get $q)))
    (global.set $delimiter (i8x16.splat (local.get $d)))
    (global.set $quotes (if (result i64) (i32.ge_s (local.get $q) (i32.const 0)) (then (i64.const -1)) (else (i64.const 0))))
    (global.set $doubled (i64.sub (i64.const 0) (i64.extend_i32_u (local.get $doubling))))
    (global.set $crlf (i64.sub (i64.const 0) (i64.extend_i32_u (local.get $pairs))))
    (global.set $inside (i64.const 0))
    (global.set $mayOpen (i64.const 1))
    (global.set $closed (i64.const 0))
    (global.set $crBefore (i64.const 0))
    (global.set $endBefore (i64.const 1))
    (global.set $bad (i64.const 0))
    (global.set $blank (i64.const 0))
    (global.set $lines (i32.const 0))
    (global.set $records (i32.const 0))
    (global.set $nul (v128.const i64x2 0 0))
    (global.set $backslash (v128.const i64x2 0 0))
    (global.set $high (v128.const i64x2 0 0)))

  ;; Bytes from 0 to end, a multiple of 64.
  (func (export "feed") (param $end i32)
    (local $at i32)
    (local $v0 v128) (local $v1 v128) (local $v2 v128) (local $v3 v128)
    (local $nulSplat v128) (local $backslashSplat v128) (local $lfSplat v128) (local $crSplat v128) (local $quoteSplat v128) (local $delimiterSplat v128)
    (local $nul v128) (local $backslash v128) (local $high v128)
    (local $q i64) (local $d i64) (local $lf i64) (local $cr i64)
    (local $in i64) (local $out i64) (local $opening i64) (local $closing i64) (local $ends i64) (local $crOut i64) (local $starts i64)
    (local $inside i64) (local $mayOpen i64) (local $closed i64) (local $crBefore i64) (local $endBefore i64) (local $bad i64) (local $blank i64)
    (local $lines i32) (local $records i32) (local $quotes i64) (local $doubled i64) (local $crlf i64)
    (local.set $backslashSplat (i8x16.splat (i32.const 92)))
    (local.set $lfSplat (i8x16.splat (i32.const 10)))
    (local.set $crSplat (i8x16.splat (i32.const 13)))
    (local.set $quoteSplat (global.get $quote))
    (local.set $delimiterSplat (global.get $delimiter))
    (local.set $quotes (global.get $quotes))
    (local.set $doubled (global.get $doubled))
    (local.set $crlf (global.get $crlf))
    (local.set $inside (global.get $inside))
    (local.set $mayOpen (global.get $mayOpen))
    (local.set $closed (global.get $closed))
    (local.set $crBefore (global.get $crBefore))
    (local.set $endBefore (global.get $endBefore))
    (local.set $bad (global.get $bad))
    (local.set $blank (global.get $blank))
    (local.set $lines (global.get $lines))
    (local.set $records (global.get $records))
    (local.set $nul (global.get $nul))
    (local.set $backslash (global.get $backslash))
    (local.set $high (global.get $high))
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $at) (local.get $end)))
        (local.set $v0 (v128.load (local.get $at)))
        (local.set $v1 (v128.load offset=16 (local.get $at)))
        (local.set $v2 (v128.load offset=32 (local.get $at)))
        (local.set $v3 (v128.load offset=48 (local.get $at)))
        (local.set $high (v128.or (local.get $high) (v128.or (v128.or (local.get $v0) (local.get $v1)) (v128.or (local.get $v2) (local.get $v3)))))
        (local.set $nul (v128.or (local.get $nul) (i8x16.eq (local.get $nulSplat)
          (i8x16.min_u (i8x16.min_u (local.get $v0) (local.get $v1)) (i8x16.min_u (local.get $v2) (local.get $v3))))))
        (local.set $backslash (v128.or (local.get $backslash) (v128.or
          (v128.or (i8x16.eq (local.get $v0) (local.get $backslashSplat)) (i8x16.eq (local.get $v1) (local.get $backslashSplat)))
          (v128.or (i8x16.eq (local.get $v2) (local.get $backslashSplat)) (i8x16.eq (local.get $v3) (local.get $backslashSplat))))))
        (local.set $lf
          (i64.or
            (i64.or (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $v0) (local.get $lfSplat))))
                    (i64.shl (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $v1) (local.get $lfSplat)))) (i64.const 16)))
            (i64.or (i64.shl (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $v2) (local.get $lfSplat)))) (i64.const 32))
                    (i64.shl (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $v3) (local.get $lfSplat)))) (i64.const 48)))))
        (local.set $cr
          (i64.or
            (i64.or (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $v0) (local.get $crSplat))))
                    (i64.shl (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $v1) (local.get $crSplat)))) (i64.const 16)))
            (i64.or (i64.shl (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $v2) (local.get $crSplat)))) (i64.const 32))
                    (i64.shl (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $v3) (local.get $crSplat)))) (i64.const 48)))))
        (local.set $lines (i32.add (local.get $lines) (i32.wrap_i64 (i64.popcnt (local.get $lf)))))
        (if (i64.eqz (local.get $quotes))
          (then
            (local.set $ends (local.get $lf))
            (local.set $crOut (local.get $cr)))
          (else
        (local.set $q
          (i64.or
            (i64.or (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $v0) (local.get $quoteSplat))))
                    (i64.shl (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $v1) (local.get $quoteSplat)))) (i64.const 16)))
            (i64.or (i64.shl (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $v2) (local.get $quoteSplat)))) (i64.const 32))
                    (i64.shl (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $v3) (local.get $quoteSplat)))) (i64.const 48)))))
        (local.set $d
          (i64.or
            (i64.or (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $v0) (local.get $delimiterSplat))))
                    (i64.shl (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $v1) (local.get $delimiterSplat)))) (i64.const 16)))
            (i64.or (i64.shl (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $v2) (local.get $delimiterSplat)))) (i64.const 32))
                    (i64.shl (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $v3) (local.get $delimiterSplat)))) (i64.const 48)))))
            ;; Prefix parity of the quotes: ones from an opening quote to before the closing one.
            (local.set $in (i64.xor (local.get $q) (i64.shl (local.get $q) (i64.const 1))))
            (local.set $in (i64.xor (local.get $in) (i64.shl (local.get $in) (i64.const 2))))
            (local.set $in (i64.xor (local.get $in) (i64.shl (local.get $in) (i64.const 4))))
            (local.set $in (i64.xor (local.get $in) (i64.shl (local.get $in) (i64.const 8))))
            (local.set $in (i64.xor (local.get $in) (i64.shl (local.get $in) (i64.const 16))))
            (local.set $in (i64.xor (local.get $in) (i64.shl (local.get $in) (i64.const 32))))
            (local.set $in (i64.xor (local.get $in) (local.get $inside)))
            (local.set $inside (i64.shr_s (local.get $in) (i64.const 63)))
            (local.set $out (i64.xor (local.get $in) (i64.const -1)))
            (local.set $opening (i64.and (local.get $q) (local.get $in)))
            (local.set $closing (i64.and (local.get $q) (local.get $out)))
            (local.set $ends (i64.and (local.get $lf) (local.get $out)))
            (local.set $crOut (i64.and (local.get $cr) (local.get $out)))
            (local.set $starts (i64.or (i64.and (local.get $d) (local.get $out)) (i64.or (local.get $ends) (i64.and (local.get $closing) (local.get $doubled)))))
            ;; An opening quote wants a delimiter, a line end or (two are one) a closing quote before it.
            (local.set $bad (i64.or (local.get $bad) (i64.and (local.get $opening)
              (i64.xor (i64.or (i64.shl (local.get $starts) (i64.const 1)) (local.get $mayOpen)) (i64.const -1)))))
            ;; A closing one wants a delimiter, a line end or an opening quote behind it.
            (local.set $bad (i64.or (local.get $bad) (i64.and (i64.or (i64.shl (local.get $closing) (i64.const 1)) (local.get $closed))
              (i64.xor (i64.const -1)
                (i64.or (i64.or (local.get $d) (local.get $lf)) (i64.or (local.get $cr) (i64.and (local.get $opening) (local.get $doubled))))))))
            (local.set $mayOpen (i64.shr_u (local.get $starts) (i64.const 63)))
            (local.set $closed (i64.shr_u (local.get $closing) (i64.const 63)))))
        ;; Each CR comes right before a line end, and, where line ends are CR LF, each line end right after a CR.
        (local.set $bad (i64.or (local.get $bad) (i64.xor
          (i64.or (i64.shl (local.get $crOut) (i64.const 1)) (local.get $crBefore))
          (i64.and (local.get $ends) (local.get $crlf)))))
        (local.set $blank (i64.or (local.get $blank) (i64.and
          (i64.or (i64.shl (local.get $ends) (i64.const 1)) (local.get $endBefore))
          (i64.or (local.get $ends) (local.get $crOut)))))
        (local.set $crBefore (i64.shr_u (local.get $crOut) (i64.const 63)))
        (local.set $endBefore (i64.shr_u (local.get $ends) (i64.const 63)))
        (local.set $records (i32.add (local.get $records) (i32.wrap_i64 (i64.popcnt (local.get $ends)))))
        (local.set $at (i32.add (local.get $at) (i32.const 64)))
        (br $next)))
    (global.set $inside (local.get $inside))
    (global.set $mayOpen (local.get $mayOpen))
    (global.set $closed (local.get $closed))
    (global.set $crBefore (local.get $crBefore))
    (global.set $endBefore (local.get $endBefore))
    (global.set $bad (local.get $bad))
    (global.set $blank (local.get $blank))
    (global.set $lines (local.get $lines))
    (global.set $records (local.get $records))
    (global.set $nul (local.get $nul))
    (global.set $backslash (local.get $backslash))
    (global.set $high (local.get $high)))

  (func (export "lines") (result i32) (global.get $lines))
  (func (export "records") (result i32) (global.get $records))

  ;; 1: line ends or quotes are not as they should be, or a quoted field is open; 2: a blank line; 4: a NUL; 8: a backslash; 16: a byte above 0x7F.
  (func (export "flags") (result i32)
    (i32.or
      (i32.or
        (i64.ne (i64.or (i64.or (global.get $bad) (global.get $inside)) (global.get $crBefore)) (i64.const 0))
        (i32.shl (i64.ne (global.get $blank) (i64.const 0)) (i32.const 1)))
      (i32.or
        (i32.or
          (i32.shl (v128.any_true (global.get $nul)) (i32.const 2))
          (i32.shl (v128.any_true (global.get $backslash)) (i32.const 3)))
        (i32.shl (i32.ne (i8x16.bitmask (global.get $high)) (i32.const 0)) (i32.const 4))))))
