/* SPDX-License-Identifier: Apache-2.0 */
/* Options with a list of values take no others. */
/* flags: -q -xevaltime=never */
/* status: 1 */
/* stderr: failed to set -x evaltime: Invalid value for specified option */
BEGIN
{
	exit(0);
}
