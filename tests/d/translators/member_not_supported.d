/* SPDX-License-Identifier: Apache-2.0 */
/* Members that the guide has and Linux has not are known, and not translated. */
/* flags: -e -xerrtags */
/* status: 1 */
/* stderr: [D_XLATE_NOCONV] line 8: translator does not define conversion for member: pr_projid */
BEGIN
{
	trace(curpsinfo->pr_projid);
}
