/* SPDX-License-Identifier: Apache-2.0 */
/* freopen() sends what follows elsewhere. */
/* flags: -q -w */
BEGIN
{
	printf("here\n");
	freopen("/dev/null");
	printf("there\n");
	exit(0);
}
/* output:
here
*/
