/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 3: an unknown flag is a usage error. */
/* flags: -q -y */
/* status: 2 */
/* stderr: dtrace */
BEGIN
{
	exit(0);
}
