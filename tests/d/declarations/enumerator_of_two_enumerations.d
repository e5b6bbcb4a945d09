/* SPDX-License-Identifier: Apache-2.0 */
/* A name is an enumerator of one enumeration, even when the values agree. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_DECL_IDRED] */
enum first { A, B };
enum second { A };
BEGIN
{
	exit(0);
}
