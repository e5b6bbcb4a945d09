/* SPDX-License-Identifier: Apache-2.0 */
/* freopen() of the empty string goes back to where the output was first. */
/* flags: -q -w */
BEGIN
{
	freopen("/dev/null");
	printf("there\n");
	freopen("");
	printf("here\n");
	exit(0);
}
/* output:
here

*/
