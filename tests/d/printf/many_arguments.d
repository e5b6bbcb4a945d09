/* SPDX-License-Identifier: Apache-2.0 */
/* Twelve arguments of many types. */
BEGIN
{
	printf("%d%s%c%x%d%s%c%x%d%s%c%x\n", 1, "a", 'b', 12, 2ll, "c", 'd', 13,
	    (short)3, "e", 'f', 14);
	exit(0);
}
/* output:
1abc2cdd3efe

*/
