/* SPDX-License-Identifier: Apache-2.0 */
/* count() alone has nowhere to go. */
/* status: 1 */
/* stderr: line  */
BEGIN
{
	count();
	exit(0);
}
