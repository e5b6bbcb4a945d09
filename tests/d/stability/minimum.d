/* SPDX-License-Identifier: Apache-2.0 */
/* -xamin: nothing may be less stable. */
/* flags: -e -xerrtags -xamin=Evolving/Evolving/Common */
/* status: 1 */
/* stderr: [D_ATTR_MIN] line 9: attributes for scalar curthread (Stable/Private/Common) are less than predefined minimum */
BEGIN
{
	trace(execname);
	trace(curthread->pid);
}
