/* SPDX-License-Identifier: Apache-2.0 */
/* flags: -q -x cpu=100000 */
/* status: 1 */
/* stderr: dtrace: could not enable tracing: there is no processor 100000 */
BEGIN
{
	exit(0);
}
