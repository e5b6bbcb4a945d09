/* SPDX-License-Identifier: Apache-2.0 */
/* Three words: of names, of data, and what they depend on. */
/* flags: -e -xamin=Stable/Stable */
/* status: 1 */
/* stderr: dtrace: failed to set -x amin: Invalid value for specified option */
BEGIN
{
	exit(0);
}
