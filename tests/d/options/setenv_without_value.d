/* SPDX-License-Identifier: Apache-2.0 */
/* flags: -q -x setenv=CLEW_A */
/* status: 1 */
/* stderr: dtrace: failed to set -x setenv: Invalid value for specified option */
BEGIN
{
	exit(0);
}
