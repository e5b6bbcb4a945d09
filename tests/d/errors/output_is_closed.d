/* SPDX-License-Identifier: Apache-2.0 */
/* Nothing of ours takes the place of a standard output that is closed. */
/* redirected: >&- */
/* status: 1 */
/* stderr: dtrace: failed to write output: Bad file descriptor */
BEGIN
{
	printf("lost\n");
	exit(0);
}
