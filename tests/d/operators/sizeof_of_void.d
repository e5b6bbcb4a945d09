/* SPDX-License-Identifier: Apache-2.0 */
/* void has no size. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_SIZEOF_TYPE] */
BEGIN
{
	trace(sizeof (void));
	exit(0);
}
