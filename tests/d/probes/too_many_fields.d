/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 9: a description has four fields. */
/* status: 1 */
/* stderr: failed to compile script */
a:b:c:d:e
{
	exit(0);
}
