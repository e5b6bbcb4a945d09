/* SPDX-License-Identifier: Apache-2.0 */
/* The value of an assignment to a bit-field is what is in it afterwards. */
struct flags {
	unsigned int low:5;
	int high:3;
};
struct flags f;
BEGIN
{
	printf("%d %d %d\n", --f.low, f.low++, f.low);
	printf("%d\n", ++f.low);
	printf("%d %d\n", f.low = 100, f.high = 7);
	printf("%d %d\n", f.low += 50, f.high -= 4);
	exit(0);
}
/* output:
31 31 0
1
4 -1
22 3

*/
