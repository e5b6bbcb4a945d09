/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 3 and 46. */
/* flags: -q -x nosuchoption=1 */
/* status: 1 */
/* stderr: dtrace: failed to set -x nosuchoption */
BEGIN
{
	exit(0);
}
