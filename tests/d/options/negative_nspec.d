/* SPDX-License-Identifier: Apache-2.0 */
/* There are no fewer than no speculations. */
/* flags: -x nspec=-1 -e */
/* status: 1 */
/* stderr: dtrace: failed to set -x nspec: Invalid value for specified option */
BEGIN
{
	exit(0);
}
