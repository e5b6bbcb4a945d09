/* SPDX-License-Identifier: Apache-2.0 */
/* Actions have no value. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_OP_ACT] */
BEGIN
{
	x = (trace(1), 2);
	exit(0);
}
