/* SPDX-License-Identifier: Apache-2.0 */
/* Pragmas of others are ignored. */
#pragma pack 1
#pragma ident "text"
BEGIN
{
	printf("ok\n");
	exit(0);
}
/* output:
ok

*/
