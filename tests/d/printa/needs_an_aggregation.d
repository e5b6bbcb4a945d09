/* SPDX-License-Identifier: Apache-2.0 */
/* printa of a number. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PRINTA_AGGARG] */
BEGIN
{
	printa("%d\n", 5);
	exit(0);
}
