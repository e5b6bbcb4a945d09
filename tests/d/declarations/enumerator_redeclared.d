/* SPDX-License-Identifier: Apache-2.0 */
/* An enumerator has one value. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_DECL_IDRED] */
enum a { ONE = 1 };
enum b { ONE = 2 };
BEGIN
{
	exit(0);
}
