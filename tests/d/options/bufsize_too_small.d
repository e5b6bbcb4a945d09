/* SPDX-License-Identifier: Apache-2.0 */
/* A buffer that cannot hold one record. */
/* status: 1 */
/* stderr: dtrace: could not enable tracing: Enabling exceeds size of buffer */
#pragma D option bufsize=0
BEGIN
{
	exit(0);
}
