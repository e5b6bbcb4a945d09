/* SPDX-License-Identifier: Apache-2.0 */
/* flags: -q -x unsetenv=CLEW_A=1 */
/* status: 1 */
/* stderr: dtrace: failed to set -x unsetenv: Invalid value for specified option */
BEGIN
{
	exit(0);
}
