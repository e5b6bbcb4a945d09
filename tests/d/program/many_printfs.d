/* SPDX-License-Identifier: Apache-2.0 */
/* A clause with many actions. */
BEGIN
{
	printf("a"); printf("%d", 1); printf("b"); printf("%d", 2); printf("c"); printf("%d", 3);
	printf("d"); printf("%d", 4); printf("e"); printf("%d", 5); printf("f"); printf("%d", 6);
	printf("g"); printf("%d", 7); printf("h"); printf("%d", 8); printf("i"); printf("%d", 9);
	printf("\n");
	exit(0);
}
/* output:
a1b2c3d4e5f6g7h8i9

*/
