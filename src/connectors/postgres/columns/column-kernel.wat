;; Puts rows of binary COPY into columns: walks CopyData messages (a byte d, a length of four bytes that counts itself, a count of fields of two bytes; for
;; each field a length of four bytes, -1 for NULL, and the value; all big-endian) and turns values into Arrow's layout. Stops before whatever it does not
;; take: a message of another kind or cut, a value that the column's type lacks, a column that is full. column-kernel.ts is made from this file:
;; `node test/support/write-kernels.mjs`; a unit test compares the two.
(module
  ;; From 0 on messages, up to 64 KiB; from 66560 on 16 bytes a column: what to do, where its values go, where their ends go, and the bytes that a value takes
  ;; (for texts: that there is room for); from 93184 on the missing values, each as 65536 × column + row. Room behind each area for a step of 16 bytes.
  (memory (export "memory") 1)
  (global $rows (mut i32) (i32.const 0))
  (global $nulls (mut i32) (i32.const 0))
  (global $bytes (mut i32) (i32.const 0))
  (func (export "rows") (result i32) (global.get $rows))
  (func (export "nulls") (result i32) (global.get $nulls))
  (func (export "bytes") (result i32) (global.get $bytes))

  ;; The engine does not inline calls: the hottest places say it themselves.
  (func $int32 (param $at i32) (result i32)
    (local $raw i32)
    (local.set $raw (i32.load align=1 (local.get $at)))
    (i32.or
      (i32.and (i32.rotl (local.get $raw) (i32.const 8)) (i32.const 0x00ff00ff))
      (i32.and (i32.rotr (local.get $raw) (i32.const 8)) (i32.const 0xff00ff00))))

  (func $int64 (param $at i32) (result i64)
    (i64.or
      (i64.shl (i64.extend_i32_u (call $int32 (local.get $at))) (i64.const 32))
      (i64.extend_i32_u (call $int32 (i32.add (local.get $at) (i32.const 4))))))

  ;; Takes at most `most` rows, and no more once they have `budget` bytes; a row counts as `least` bytes or more. Gives where the first begins that it did not take.
  (func (export "walk")
    (param $at i32) (param $end i32) (param $columns i32) (param $most i32) (param $budget i32) (param $least i32) (result i32)
    (local $rows i32) (local $nulls i32) (local $before i32) (local $bytes i32)
    (local $stop i32) (local $size i32) (local $from i32) (local $column i32) (local $last i32) (local $want i32)
    (local $length i32) (local $to i32) (local $until i32) (local $wide i64)
    (local.set $last (i32.add (i32.const 66560) (i32.shl (local.get $columns) (i32.const 4))))
    (local.set $want (i32.or (i32.shr_u (local.get $columns) (i32.const 8)) (i32.shl (i32.and (local.get $columns) (i32.const 255)) (i32.const 8))))
    (block $done
      (loop $next
        (local.set $before (local.get $nulls))
        (br_if $done (i32.ge_u (local.get $rows) (local.get $most)))
        (br_if $done (i32.ge_u (local.get $bytes) (local.get $budget)))
        (br_if $done (i32.lt_u (i32.sub (local.get $end) (local.get $at)) (i32.const 7)))
        (br_if $done (i32.ne (i32.load8_u (local.get $at)) (i32.const 100)))
        (local.set $size (call $int32 (i32.add (local.get $at) (i32.const 1))))
        (br_if $done (i32.ge_u (local.get $size) (i32.sub (local.get $end) (local.get $at))))
        (br_if $done (i32.lt_u (local.get $size) (i32.const 6)))
        (br_if $done (i32.ne (i32.load16_u offset=5 align=1 (local.get $at)) (local.get $want)))
        (local.set $stop (i32.add (i32.add (local.get $at) (i32.const 1)) (local.get $size)))
        (local.set $from (i32.add (local.get $at) (i32.const 7)))
        (local.set $column (i32.const 66560))
        (loop $field
          (br_if $done (i32.lt_u (i32.sub (local.get $stop) (local.get $from)) (i32.const 4)))
          (local.set $length (i32.load align=1 (local.get $from)))
          (local.set $length (i32.or
            (i32.and (i32.rotl (local.get $length) (i32.const 8)) (i32.const 0x00ff00ff))
            (i32.and (i32.rotr (local.get $length) (i32.const 8)) (i32.const 0xff00ff00))))
          (local.set $from (i32.add (local.get $from) (i32.const 4)))
          (if (i32.eq (local.get $length) (i32.const -1))
            (then
              (i32.store (i32.add (i32.const 93184) (i32.shl (local.get $nulls) (i32.const 2)))
                (i32.or
                  (i32.shl (i32.shr_u (i32.sub (local.get $column) (i32.const 66560)) (i32.const 4)) (i32.const 16))
                  (local.get $rows)))
              (local.set $nulls (i32.add (local.get $nulls) (i32.const 1)))
              (local.set $to (i32.load offset=8 (local.get $column)))
              (if (local.get $to)
                (then
                  (local.set $to (i32.add (local.get $to) (i32.shl (local.get $rows) (i32.const 2))))
                  (i32.store offset=4 (local.get $to) (i32.load (local.get $to))))
                (else
                  (v128.store align=1
                    (i32.add (i32.load offset=4 (local.get $column)) (i32.mul (local.get $rows) (i32.load offset=12 (local.get $column))))
                    (v128.const i32x4 0 0 0 0)))))
            (else
              (br_if $done (i32.gt_u (local.get $length) (i32.sub (local.get $stop) (local.get $from))))
              (local.set $to (i32.load offset=4 (local.get $column)))
              (block $value
                (block $place
                  (block $stamp
                    (block $time
                      (block $date
                        (block $text
                          (block $uuid
                            (block $eight
                              (block $four
                                (block $two
                                  (block $bool
                                    (br_table $bool $two $four $eight $uuid $text $date $time $stamp $place (i32.load (local.get $column))))
                                  (br_if $done (i32.ne (local.get $length) (i32.const 1)))
                                  (i32.store8 (i32.add (local.get $to) (local.get $rows)) (i32.load8_u (local.get $from)))
                                  (br $value))
                                (br_if $done (i32.ne (local.get $length) (i32.const 2)))
                                (i32.store16 (i32.add (local.get $to) (i32.shl (local.get $rows) (i32.const 1)))
                                  (i32.or (i32.shl (i32.load8_u (local.get $from)) (i32.const 8)) (i32.load8_u offset=1 (local.get $from))))
                                (br $value))
                              (br_if $done (i32.ne (local.get $length) (i32.const 4)))
                              (local.set $size (i32.load align=1 (local.get $from)))
                              (i32.store (i32.add (local.get $to) (i32.shl (local.get $rows) (i32.const 2)))
                                (i32.or
                                  (i32.and (i32.rotl (local.get $size) (i32.const 8)) (i32.const 0x00ff00ff))
                                  (i32.and (i32.rotr (local.get $size) (i32.const 8)) (i32.const 0xff00ff00))))
                              (br $value))
                            (br_if $done (i32.ne (local.get $length) (i32.const 8)))
                            (i64.store (i32.add (local.get $to) (i32.shl (local.get $rows) (i32.const 3))) (call $int64 (local.get $from)))
                            (br $value))
                          (br_if $done (i32.ne (local.get $length) (i32.const 16)))
                          (v128.store align=1 (i32.add (local.get $to) (i32.shl (local.get $rows) (i32.const 4))) (v128.load align=1 (local.get $from)))
                          (br $value))
                        ;; A text: copied in steps of 16 bytes, of which the last writes past its end, where the next will be.
                        (local.set $size (i32.add (i32.load offset=8 (local.get $column)) (i32.shl (local.get $rows) (i32.const 2))))
                        (local.set $until (i32.load (local.get $size)))
                        (br_if $done (i32.gt_u (local.get $length) (i32.sub (i32.load offset=12 (local.get $column)) (local.get $until))))
                        (i32.store offset=4 (local.get $size) (i32.add (local.get $until) (local.get $length)))
                        (local.set $to (i32.add (local.get $to) (local.get $until)))
                        (local.set $until (i32.add (local.get $to) (local.get $length)))
                        (local.set $size (local.get $from))
                        (block $copied
                          (loop $copy
                            (br_if $copied (i32.ge_u (local.get $to) (local.get $until)))
                            (v128.store align=1 (local.get $to) (v128.load align=1 (local.get $size)))
                            (local.set $to (i32.add (local.get $to) (i32.const 16)))
                            (local.set $size (i32.add (local.get $size) (i32.const 16)))
                            (br $copy)))
                        (br $value))
                      ;; A date: years 1 to 9999 in days since 2000, stored as days since 1970.
                      (br_if $done (i32.ne (local.get $length) (i32.const 4)))
                      (local.set $size (call $int32 (local.get $from)))
                      (br_if $done (i32.lt_s (local.get $size) (i32.const -730119)))
                      (br_if $done (i32.gt_s (local.get $size) (i32.const 2921939)))
                      (i32.store (i32.add (local.get $to) (i32.shl (local.get $rows) (i32.const 2))) (i32.add (local.get $size) (i32.const 10957)))
                      (br $value))
                    ;; A time: microseconds, less than a day of them.
                    (br_if $done (i32.ne (local.get $length) (i32.const 8)))
                    (local.set $wide (call $int64 (local.get $from)))
                    (br_if $done (i64.ge_u (local.get $wide) (i64.const 86400000000)))
                    (i64.store (i32.add (local.get $to) (i32.shl (local.get $rows) (i32.const 3))) (local.get $wide))
                    (br $value))
                  ;; A timestamp: years 1 to 9999 in microseconds since 2000, stored as microseconds since 1970.
                  (br_if $done (i32.ne (local.get $length) (i32.const 8)))
                  (local.set $wide (call $int64 (local.get $from)))
                  (br_if $done (i64.lt_s (local.get $wide) (i64.const -63082281600000000)))
                  (br_if $done (i64.ge_s (local.get $wide) (i64.const 252455616000000000)))
                  (i64.store (i32.add (local.get $to) (i32.shl (local.get $rows) (i32.const 3))) (i64.add (local.get $wide) (i64.const 946684800000000)))
                  (br $value))
                ;; Anything else: where it lies, for JavaScript.
                (local.set $to (i32.add (local.get $to) (i32.shl (local.get $rows) (i32.const 3))))
                (i32.store (local.get $to) (local.get $from))
                (i32.store offset=4 (local.get $to) (local.get $length)))
              (local.set $from (i32.add (local.get $from) (local.get $length)))))
          (local.set $column (i32.add (local.get $column) (i32.const 16)))
          (br_if $field (i32.lt_u (local.get $column) (local.get $last))))
        ;; A row with bytes left over is not taken.
        (br_if $done (i32.ne (local.get $from) (local.get $stop)))
        (local.set $size (i32.sub (i32.sub (local.get $stop) (local.get $at)) (i32.const 5)))
        (local.set $bytes (i32.add (local.get $bytes)
          (select (local.get $size) (local.get $least) (i32.gt_u (local.get $size) (local.get $least)))))
        (local.set $at (local.get $stop))
        (local.set $rows (i32.add (local.get $rows) (i32.const 1)))
        (br $next)))
    (global.set $rows (local.get $rows))
    (global.set $nulls (local.get $before))
    (global.set $bytes (local.get $bytes))
    (local.get $at)))
