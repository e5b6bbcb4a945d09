(* SPDX-License-Identifier: Apache-2.0 *)
(* Collects garbage under deep stacks, and raises exceptions through them. *)
exception Deep of int

let rec deep n = if n = 0 then raise (Deep 7) else 1 + deep (n - 1)
let rec build n = if n = 0 then [] else string_of_int n :: build (n - 1)

let () =
  let sum = ref 0 in
  for i = 1 to 100 do
    let all = build 2000 in
    (try sum := !sum + deep i with Deep x -> sum := !sum + x);
    sum := !sum + List.length (List.map (fun s -> s ^ "x") all)
  done;
  Gc.full_major ();
  Printf.printf "%d\n" !sum
