/* SPDX-License-Identifier: Apache-2.0 */
/* An action has no value. */
/* status: 1 */
/* stderr: line */
BEGIN
{
	x = printf("a");
	exit(0);
}
