/* SPDX-License-Identifier: Apache-2.0 */
/* A struct in the memory of the traced program is assigned as a whole. */
/* flags: -q -c '/bin/sleep 0.01' */
struct time { long s; long n; };
struct time g;
struct time by_number[int];
syscall::clock_nanosleep:entry
/pid == $target/
{
	this->c = *(userland struct time *)arg2;
	g = *(userland struct time *)arg2;
	by_number[7] = *(userland struct time *)arg2;
	printf("%d %d %d %d\n", g.s, g.n, this->c.n, by_number[7].n);
}
/* output:
0 10000000 10000000 10000000

*/
