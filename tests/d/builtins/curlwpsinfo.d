/* SPDX-License-Identifier: Apache-2.0 */
/* curlwpsinfo describes the thread. */
BEGIN
{
	printf("%d\n", curlwpsinfo->pr_lwpid == tid);
	exit(0);
}
/* output:
1

*/
