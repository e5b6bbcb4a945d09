/* SPDX-License-Identifier: Apache-2.0 */
/* Nothing of the kernel is stable. */
/* flags: -e -xerrtags */
/* status: 1 */
/* stderr: [D_ATTR_MIN] line 10: attributes for external symbol `schedule (Private/Private/Unknown) are less than predefined minimum */
#pragma D option amin=Evolving/Evolving/Common

BEGIN
{
	trace((long)&`schedule);
}
