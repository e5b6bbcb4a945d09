/* SPDX-License-Identifier: Apache-2.0 */
/* An integer constant has the first type of C's list that can hold it. */
BEGIN
{
	printf("%d %d %d %d\n", sizeof (2147483647), sizeof (2147483648),
	    sizeof (0xffffffff), sizeof (0x100000000));
	printf("%d\n", 0xffffffff > 0);
	exit(0);
}
/* output:
4 8 4 8
1

*/
