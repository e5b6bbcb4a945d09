/* SPDX-License-Identifier: Apache-2.0 */
/* C`int and D`uint8_t name what stands in no module. */
struct own { int a; };
BEGIN
{
	printf("%d %d %d\n", sizeof (C`int), sizeof (D`uint8_t), sizeof (struct D`own));
	exit(0);
}
/* output:
4 1 4

*/
