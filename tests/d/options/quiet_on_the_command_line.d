/* SPDX-License-Identifier: Apache-2.0 */
/* -xquiet is -q. */
/* flags: -xquiet */
BEGIN
{
	printf("quiet\n");
	exit(0);
}
/* output:
quiet

*/
