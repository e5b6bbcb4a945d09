/* SPDX-License-Identifier: Apache-2.0 */
/* A script is not read for ever. */
/* flags: -q -s /dev/zero */
/* status: 1 */
/* stderr: dtrace: failed to read /dev/zero: it is larger than */
BEGIN
{
	exit(0);
}
