/* SPDX-License-Identifier: Apache-2.0 */
/* An enumerator without a value is one more than the last, as an int. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_DECL_ENOFLOW] */
enum large { A = 2147483647, B };
BEGIN
{
	exit(0);
}
