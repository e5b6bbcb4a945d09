/* SPDX-License-Identifier: Apache-2.0 */
/* An enumerator needs a constant. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_DECL_ENCONST] */
enum bad { ONE = "one" };
BEGIN
{
	exit(0);
}
