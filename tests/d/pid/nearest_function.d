/* SPDX-License-Identifier: Apache-2.0 */
/* The nearest function of the target. */
/* flags: -e -c /bin/true */
/* status: 1 */
/* stderr:  did you mean 'pid$target::malloc:entry'? */
pid$target::mallok:entry
{
	exit(0);
}
