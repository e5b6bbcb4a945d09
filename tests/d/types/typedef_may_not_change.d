/* SPDX-License-Identifier: Apache-2.0 */
/* A second typedef of the name with another type. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_DECL_IDRED] */
typedef int number_t;
typedef long number_t;
BEGIN
{
	exit(0);
}
