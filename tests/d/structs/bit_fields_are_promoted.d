/* SPDX-License-Identifier: Apache-2.0 */
/* A bit-field that int can hold is an int in arithmetic, as in C; a wider one keeps its type. */
struct flags {
	unsigned int low:5;
	unsigned int all:32;
	unsigned int high:17;
};
struct flags f;
BEGIN
{
	f.low = 3;
	f.all = 3;
	f.high = 100;
	printf("%d %d\n", f.low - 4 < 0, f.all - 4 < 0);
	printf("%d %d\n", -f.low, (f.low << 1) - 7);
	printf("%d\n", (1 ? f.low : 0) / -2);
	f.high /= -7;
	printf("%d\n", f.high);
	printf("%d %d %d\n", -(f.low = 4) < 0, -f.low++ < 0, ~(f.low += 1) < 0);
	exit(0);
}
/* output:
1 0
-3 -1
-1
131058
1 1 1

*/
