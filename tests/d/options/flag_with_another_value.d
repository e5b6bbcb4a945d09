/* SPDX-License-Identifier: Apache-2.0 */
/* Neither on nor off. */
/* flags: -x quiet=perhaps -e */
/* status: 1 */
/* stderr: dtrace: failed to set -x quiet: Invalid value for specified option */
BEGIN
{
	exit(0);
}
