/* SPDX-License-Identifier: Apache-2.0 */
/* What says off is off. */
/* flags: -x errtags=off */
/* status: 1 */
/* stderr: errtags_off.d: line 8: */
BEGIN
{
	trace(no_such_variable);
}
