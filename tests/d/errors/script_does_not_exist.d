/* SPDX-License-Identifier: Apache-2.0 */
/* The name of the script is part of the message. */
/* flags: -q -s /no/such/script.d */
/* status: 1 */
/* stderr: /no/such/script.d */
BEGIN
{
	exit(0);
}
