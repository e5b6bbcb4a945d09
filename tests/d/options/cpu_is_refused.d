/* SPDX-License-Identifier: Apache-2.0 */
/* A trace of one processor is none of all: better none. */
/* flags: -q -x cpu=0 */
/* status: 1 */
/* stderr: failed to set -x cpu: Option is not supported */
BEGIN
{
	exit(0);
}
