/* SPDX-License-Identifier: Apache-2.0 */
/* What is not there is not taken silently. */
/* flags: -x oformat=json -e */
/* status: 1 */
/* stderr: dtrace: failed to set -x oformat: Option is not supported */
BEGIN
{
	exit(0);
}
