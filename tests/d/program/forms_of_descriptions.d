/* SPDX-License-Identifier: Apache-2.0 */
/* -P, -f, -i and -n name the field that a single word is; -b is bufsize. */
/* flags: -q -b 1m -c '/bin/sleep 0.01' -P 'dtrace /probename == "BEGIN"/ { trace("P "); }' -i '1 { trace("i "); }' -n 'BEGIN { trace("n "); }' -f 'clock_nanosleep /pid == $target/ { seen = 1; }' */
END
/seen/
{
	trace("f");
}
/* output:
P i n f
*/
