;; Takes CopyData messages apart: walks their headers (a byte d, a length of four bytes, big-endian, that counts itself) and puts payloads one behind
;; the other. row-kernel.ts is made from this file: `node test/support/write-kernels.mjs`; a unit test compares the two.
(module
  ;; Messages lie from 0 on, up to 128 KiB; payloads go behind them, up to 512 KiB, with room for what a step of 16 bytes writes past the end.
  (memory (export "memory") 11)
  (global $out (mut i32) (i32.const 0))
  (global $rows (mut i32) (i32.const 0))
  (func (export "out") (result i32) (global.get $out))
  (func (export "rows") (result i32) (global.get $rows))

  ;; Takes whole messages from `at` on while their payloads fit below `limit` and there are no more than `most`.
  ;; Gives where the first begins that it did not take; `out` says where payloads end then, `rows` how many were taken.
  (func (export "walk") (param $at i32) (param $end i32) (param $out i32) (param $limit i32) (param $most i32) (result i32)
    (local $size i32) (local $from i32) (local $to i32) (local $stop i32) (local $rows i32)
    (block $done
      (loop $next
        (br_if $done (i32.lt_u (i32.sub (local.get $end) (local.get $at)) (i32.const 5)))
        (br_if $done (i32.ne (i32.load8_u (local.get $at)) (i32.const 100)))
        (br_if $done (i32.ge_u (local.get $rows) (local.get $most)))
        (local.set $size (i32.load offset=1 align=1 (local.get $at)))
        (local.set $size (i32.or
          (i32.and (i32.rotl (local.get $size) (i32.const 8)) (i32.const 0x00ff00ff))
          (i32.and (i32.rotr (local.get $size) (i32.const 8)) (i32.const 0xff00ff00))))
        (br_if $done (i32.gt_u (local.get $size) (i32.sub (i32.sub (local.get $end) (local.get $at)) (i32.const 1))))
        (local.set $from (i32.add (local.get $at) (i32.const 5)))
        (local.set $stop (i32.add (local.get $out) (i32.sub (local.get $size) (i32.const 4))))
        (br_if $done (i32.gt_u (local.get $stop) (local.get $limit)))
        (local.set $to (local.get $out))
        (block $copied
          (loop $copy
            (br_if $copied (i32.ge_u (local.get $to) (local.get $stop)))
            (v128.store align=1 (local.get $to) (v128.load align=1 (local.get $from)))
            (local.set $to (i32.add (local.get $to) (i32.const 16)))
            (local.set $from (i32.add (local.get $from) (i32.const 16)))
            (br $copy)))
        (local.set $out (local.get $stop))
        (local.set $rows (i32.add (local.get $rows) (i32.const 1)))
        (local.set $at (i32.add (i32.add (local.get $at) (i32.const 1)) (local.get $size)))
        (br $next)))
    (global.set $out (local.get $out))
    (global.set $rows (local.get $rows))
    (local.get $at)))
