/* SPDX-License-Identifier: Apache-2.0 */
/* Without -C there is no #define. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PRAGCTL_INVAL] */
#define VALUE 7
BEGIN
{
	exit(0);
}
