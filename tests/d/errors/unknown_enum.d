/* SPDX-License-Identifier: Apache-2.0 */
/* An enum that is defined nowhere. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_UNKNOWN] */
BEGIN
{
	trace(sizeof (enum no_such_enum_anywhere));
	exit(0);
}
