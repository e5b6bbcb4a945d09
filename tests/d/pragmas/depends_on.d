/* SPDX-License-Identifier: Apache-2.0 */
/* depends_on of a provider. */
#pragma D depends_on provider dtrace
BEGIN
{
	printf("ok\n");
	exit(0);
}
/* output:
ok

*/
