/* SPDX-License-Identifier: Apache-2.0 */
/* A command of -c has the descriptors that are closed for us closed, too. */
/* flags: -q -c "sh -c 'test -e /proc/$$/fd/0 && echo open || echo closed'" */
/* redirected: <&- */
BEGIN
{
}
/* output:
closed

*/
