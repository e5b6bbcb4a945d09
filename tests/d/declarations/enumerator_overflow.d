/* SPDX-License-Identifier: Apache-2.0 */
/* An enumerator is an int. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_DECL_ENOFLOW] */
enum a { LARGE = 0x100000000 };
BEGIN
{
	exit(0);
}
