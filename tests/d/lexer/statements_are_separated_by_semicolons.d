/* SPDX-License-Identifier: Apache-2.0 */
/* The last statement needs no semicolon, and empty statements are allowed. */
BEGIN
{
	;
	printf("a");;
	printf("b\n");
	exit(0)
}
/* output:
ab

*/
