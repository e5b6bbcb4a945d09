/* SPDX-License-Identifier: Apache-2.0 */
/* A control line that is none of those that D knows. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PRAGCTL_INVAL] */
#nonsense
BEGIN
{
	exit(0);
}
