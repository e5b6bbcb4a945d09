/* SPDX-License-Identifier: Apache-2.0 */
/* Sixteen strings fill the room for a key to its end, and nothing beside it. */
/* flags: -q -xstrsize=255 */
BEGIN
{
	printf("hello\n");
	x["", "", "", "", "", "", "", "", "", "", "", "", "", "", "", "c"] = 1;
	x["", "", "", "", "", "", "", "", "", "", "", "", "", "", "", "d"] = 2;
	printf("%d", x["", "", "", "", "", "", "", "", "", "", "", "", "", "", "", "c"]);
	printf(" %d\n", x["", "", "", "", "", "", "", "", "", "", "", "", "", "", "", "d"]);
	exit(0);
}
/* output:
hello
1 2

*/
